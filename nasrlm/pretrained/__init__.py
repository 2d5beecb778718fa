"""RLM checkpoints that come with nasrlm, one folder each."""
