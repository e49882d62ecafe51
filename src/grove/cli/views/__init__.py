"""What commands print about a set: objects are counted into views, and views laid out as text."""
