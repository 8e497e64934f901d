"""What `hat look` shows of a document: records, pages and pictures."""
