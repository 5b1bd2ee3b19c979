"""The same for ten million samples: neighbours in cells, filters, a device."""
