/** A job keeps this many errors: the newest. */
export const KEPT_ERRORS = 10;

/** One failed attempt, in the `errors` of a job or a result: the last 10, oldest first. */
export interface AttemptError {
  /** Counted from 1. */
  attempt: number;
  /** The error's `name`, such as `TypeError`. */
  name: string;
  message: string;
  stack?: string;
  /**
   * When the attempt began, by the database's clock (ISO 8601). Not there when it did not begin: its job was
   * cancelled before, or its worker died.
   */
  startedAt?: string;
  /** When it was recorded, by the database's clock (ISO 8601). */
  at: string;
}
