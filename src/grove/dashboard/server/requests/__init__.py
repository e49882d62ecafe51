"""What requests are checked for, before they are answered."""
