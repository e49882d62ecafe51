/** Text on a canvas that must fit into some room. */

/** Text, cut off with an ellipsis where it is too long. Returns its width. */
export function drawText(ctx, text, x, y, room) {
  const shown = fitted(ctx, text, room);
  if (shown !== "") {
    ctx.fillText(shown, x, y);
  }
  return shown === "" ? 0 : ctx.measureText(shown).width;
}

/** The end of a name tells hosts of a rack apart, so that its beginning is left out. */
export function fittedEnd(ctx, text, room) {
  const width = ctx.measureText(text).width;
  if (width <= room) {
    return text;
  }
  let keep = Math.floor((room / width) * text.length) - 1;
  while (keep > 0 && ctx.measureText(`…${text.slice(-keep)}`).width > room) {
    keep -= 1;
  }
  return keep > 0 ? `…${text.slice(-keep)}` : "";
}

/** Both the beginning and the end of other names matter. */
export function fitted(ctx, text, room) {
  if (text === "" || ctx.measureText(text).width <= room) {
    return text;
  }
  const average = ctx.measureText(text).width / text.length;
  let keep = Math.floor(room / average) - 1;
  while (keep >= 3) {
    const head = Math.ceil(keep / 2);
    const shown = `${text.slice(0, head)}…${text.slice(text.length - (keep - head))}`;
    if (ctx.measureText(shown).width <= room) {
      return shown;
    }
    keep -= 1;
  }
  return "";
}
