"""What is minimized: soft averages, losses, neighbor sets, and the objective they compose."""
