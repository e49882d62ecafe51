"""Sets while they change: kept up to date by watches, shown live on a terminal, by line elsewhere."""
