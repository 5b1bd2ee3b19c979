"""A fit or a run to look at: figures, sentences, the report, the notebook and the explorer."""
