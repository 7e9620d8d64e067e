"""Speed, as ratios measured side by side in one run, and what claws take; seconds alone mean little elsewhere."""
