/** Up to a quarter more or less, so that workers that were started together do not ask together. */
export function jitter(ms: number): number {
  return ms * (0.75 + Math.random() / 2);
}
