// Load the page again, once: a browser that a link in another site led here sends its cookie only then.

const [load] = performance.getEntriesByType("navigation");
if (load?.type !== "reload") location.reload();
