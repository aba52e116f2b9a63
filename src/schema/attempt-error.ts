/** How many errors a job keeps: the newest. */
export const KEPT_ERRORS = 10;

/** One failed attempt, as `errors` of a job or a result keeps it (the last {@link KEPT_ERRORS}, oldest first). */
export interface AttemptError {
  /** Which attempt failed, counted from 1. */
  attempt: number;
  /** The error's `name`, such as `TypeError`. */
  name: string;
  message: string;
  stack?: string;
  /** When it was recorded, by the database's clock (ISO 8601). */
  at: string;
}
