// Left out: the bar for other addresses. The page shows one document.
window.SwaggerUIStandalonePreset = [];
