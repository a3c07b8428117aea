"""The objectives that are minimized, and their parts: soft averages, losses, neighbor sets."""
