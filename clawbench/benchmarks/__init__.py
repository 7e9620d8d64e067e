"""Speed, as ratios measured side by side in one run: absolute seconds mean little on a shared machine."""
