"""The paper's tables and figures, made anew from result files."""
