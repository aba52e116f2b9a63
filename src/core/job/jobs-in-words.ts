/** So many jobs for people: `1 job`, `3 jobs`. */
export function jobsInWords(count: number): string {
  return count === 1 ? '1 job' : `${count} jobs`;
}
