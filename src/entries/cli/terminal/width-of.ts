import stringWidth from 'string-width';

const graphemes = new Intl.Segmenter();

/** How many columns of a terminal a text takes: two for scripts of East Asia and for emoji. */
export function widthOf(text: string): number {
  return stringWidth(text);
}

/** The beginning of a text that takes at most this many columns; what is cut ends in an ellipsis. */
export function cutTo(text: string, columns: number): string {
  if (widthOf(text) <= columns) return text;
  let [cut, width] = ['', 0];
  // Not by code units or points: half an emoji is another sign, or none.
  for (const { segment } of graphemes.segment(text)) {
    width += widthOf(segment);
    if (width >= columns) break;
    cut += segment;
  }
  return `${cut}…`;
}
