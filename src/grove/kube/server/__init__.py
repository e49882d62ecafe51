"""HTTP servers whose connections, times and sizes are bounded."""
