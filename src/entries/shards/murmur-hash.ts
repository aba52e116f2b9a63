/**
 * MurmurHash3 (x86, 32 bits), as a whole number from 0 to 2^32 - 1. Where jobs are depends on it, so it must
 * never change.
 */
export function murmurHash(bytes: Uint8Array, seed: number): number {
  const whole = bytes.length - (bytes.length % 4);
  let hash = seed;
  for (let at = 0; at < whole; at += 4) {
    hash ^= scrambled(littleEndian(bytes, at, 4));
    hash = (Math.imul((hash << 13) | (hash >>> 19), 5) + 0xe6546b64) | 0;
  }
  hash ^= scrambled(littleEndian(bytes, whole, bytes.length - whole));
  hash ^= bytes.length;
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}

/** Of no bytes it is 0, and `scrambled(0)` is 0. */
function littleEndian(bytes: Uint8Array, at: number, count: number): number {
  let word = 0;
  for (let byte = 0; byte < count; byte++) word |= (bytes[at + byte] ?? 0) << (8 * byte);
  return word;
}

function scrambled(word: number): number {
  const mixed = Math.imul(word, 0xcc9e2d51);
  return Math.imul((mixed << 15) | (mixed >>> 17), 0x1b873593);
}
