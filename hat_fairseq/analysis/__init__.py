"""What `hat look` shows of a document, and `hat curves` of trainings: records, pages and pictures."""
