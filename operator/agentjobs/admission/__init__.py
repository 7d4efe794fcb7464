"""What is asked before anything is stored: pure decisions, and a small server that answers with them."""
