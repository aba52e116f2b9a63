const CONTROLS =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what must not reach a terminal
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g;
/** Of those, the ones that JSON allows as they are. */
const CONTROLS_OF_JSON = /[\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g;

/**
 * A text of a job, of a handler or of a database without what moves a cursor, gives colours or turns the
 * direction of writing: it may come from anywhere.
 */
export function printable(text: string): string {
  return text.replaceAll(CONTROLS, '\ufffd');
}

/** The same in one line. */
export function inLine(text: string): string {
  return printable(text.replaceAll(/[\r\n\t]+/g, ' '));
}

/** A document of JSON that is safe on a terminal, too; dates are ISO 8601, and large integers texts. */
export function json(value: unknown, space?: number): string {
  const text = JSON.stringify(value, (_, each) => (typeof each === 'bigint' ? String(each) : each), space);
  return (text ?? 'null').replaceAll(
    CONTROLS_OF_JSON,
    (control) => `\\u${control.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}
