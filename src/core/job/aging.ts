/** The priority that a job counts as: for each `afterMs` that it has been due, one better than its own. */
export function agedPriority(priority: number, dueForMs: number, afterMs: number): number {
  return Math.max(0, priority - Math.floor(Math.max(0, dueForMs) / afterMs));
}
