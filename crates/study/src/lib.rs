//! The nouns: Study (file), Plan (trials), Record (what a trial left).
