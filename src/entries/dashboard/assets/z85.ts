/** The digits of [Z85](https://rfc.zeromq.org/spec/32/): none needs an escape in a text of JavaScript. */
const DIGITS = '0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#';

/** Bytes as a text: five characters for four bytes, where base64 takes five and a third. */
export function toZ85(bytes: Uint8Array): string {
  const words = new DataView(new ArrayBuffer(Math.ceil(bytes.length / 4) * 4));
  for (const [at, byte] of bytes.entries()) words.setUint8(at, byte);
  let text = '';
  for (let at = 0; at < words.byteLength; at += 4) {
    const word = words.getUint32(at);
    for (const power of [85 ** 4, 85 ** 3, 85 ** 2, 85, 1]) text += DIGITS[Math.floor(word / power) % 85];
  }
  return text;
}

/** So many bytes of a text that {@link toZ85} has made. */
export function fromZ85(text: string, length: number): Uint8Array<ArrayBuffer> {
  const words = new DataView(new ArrayBuffer((text.length / 5) * 4));
  for (let at = 0; at < text.length; at += 5) {
    let word = 0;
    for (const digit of text.slice(at, at + 5)) word = word * 85 + DIGITS.indexOf(digit);
    words.setUint32((at / 5) * 4, word);
  }
  return new Uint8Array(words.buffer, 0, length);
}
