// Lines and text of the drawing whose contrast to the ground behind them is too low: 3 and 4.5.
(() => {
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const light = (colour) => {
    canvas.fillStyle = colour;
    canvas.fillRect(0, 0, 1, 1);
    const parts = [...canvas.getImageData(0, 0, 1, 1).data].slice(0, 3).map((value) => value / 255);
    const [r, g, b] = parts.map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const contrast = (a, b) => (Math.max(light(a), light(b)) + 0.05) / (Math.min(light(a), light(b)) + 0.05);
  const section = getComputedStyle(document.getElementById("drawing")).backgroundColor;
  const lines = [...document.querySelectorAll("svg .run, svg .glyph")]
    .map((each) => ({ what: each.parentNode.getAttribute("aria-label"), value: contrast(getComputedStyle(each).stroke, section), least: 3 }));
  const text = [...document.querySelectorAll("svg text")].map((each) => {
    const band = each.classList.contains("head") ? each.parentNode.querySelector(".band") : null;
    const ground = band ? getComputedStyle(band).fill : section;
    return { what: each.textContent, value: contrast(getComputedStyle(each).fill, ground), least: 4.5 };
  });
  return [...lines, ...text].filter(({ value, least }) => !(value >= least));
})()
