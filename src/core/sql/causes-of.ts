/** An error and its causes, each once: an error of the app may be its own cause. */
export function causesOf(error: unknown): ReadonlySet<Error> {
  const causes = new Set<Error>();
  for (let at = error; at instanceof Error && !causes.has(at); at = at.cause) causes.add(at);
  return causes;
}
