const complainedOf = new WeakSet<object>();

/** Prints what a function of the app has thrown, the first time: each row of a page may call it again. */
export function complainOnce(called: object, text: string, error: unknown): void {
  if (!complainedOf.has(called)) console.error(`drizzle-queue dashboard: ${text}`, error);
  complainedOf.add(called);
}
