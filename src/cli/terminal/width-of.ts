/** Scripts of East Asia and pictures, which take two columns. */
const WIDE = new RegExp(
  '[\\u1100-\\u115f\\u2e80-\\ua4cf\\uac00-\\ud7a3\\uf900-\\ufaff\\ufe30-\\ufe4f\\uff00-\\uff60' +
    '\\uffe0-\\uffe6\\u{1f300}-\\u{1faff}\\u{20000}-\\u{3fffd}]',
  'u',
);
const NO_WIDTH = /\p{Mark}|\p{Default_Ignorable_Code_Point}/u;

/** How many columns of a terminal a text takes. */
export function widthOf(text: string): number {
  let width = 0;
  for (const character of text) width += columnsOf(character);
  return width;
}

/** The beginning of a text that takes so many columns at most; what is cut ends in an ellipsis. */
export function cutTo(text: string, columns: number): string {
  if (widthOf(text) <= columns) return text;
  let [cut, width] = ['', 0];
  for (const character of text) {
    width += columnsOf(character);
    if (width >= columns) break;
    cut += character;
  }
  return `${cut}…`;
}

function columnsOf(character: string): number {
  if (NO_WIDTH.test(character)) return 0;
  return WIDE.test(character) ? 2 : 1;
}
