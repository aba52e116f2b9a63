import type { DashboardAccess } from './access.ts';
import { complainOnce } from './complain-once.ts';

/** The job that a value belongs to. */
export interface JobOfValue {
  readonly id: number;
  readonly kind: string;
  readonly queue: string;
  /** The values of its own columns. */
  readonly own: Readonly<Record<string, unknown>>;
}

/** A value that may be secret, as `show` is asked about it. */
export interface ShownField {
  /**
   * The job that has the value; for the payload of a schedule, one with the id 0. `undefined` where it
   * belongs to no single job: a worker's or a schedule's name, a group in the list of limits, a finding, why
   * a flow was cancelled, and a value that a viewer wants to search for.
   */
  readonly job: JobOfValue | undefined;
  /**
   * `error`: the message of an error, its stack, or why a job or a flow was cancelled. `own`: a value of an
   * own column, which `column` names.
   * `step`: the name of a step, which may contain a key.
   * `finding`: a sentence of `queue.check` or `queue.vitals`, which may name workers and database objects.
   */
  readonly field:
    | 'payload'
    | 'output'
    | 'metadata'
    | 'progress'
    | 'error'
    | 'errorName'
    | 'uniqueKey'
    | 'group'
    | 'own'
    | 'worker'
    | 'schedule'
    | 'step'
    | 'finding';
  /** The own column, by its key in the app's code. */
  readonly column?: string | undefined;
  /** The step of a workflow that has the output or the error, by its name. */
  readonly step?: string | undefined;
  /** JSON as Postgres writes it, so that large numbers are exact; anything else as a plain text. */
  readonly text: string;
  /** Whether the text is only the beginning. */
  readonly cut: boolean;
  readonly access: DashboardAccess;
}

/** Decides how a value is shown: returns a text, or `null` to hide it. */
export type Show = (field: ShownField) => string | null;

/**
 * A value as it may be shown; `null` when it is hidden. Everything that shows values of rows calls this:
 * pages, downloads, the audit line and the command line. Names that code defines are not values: kinds,
 * queues, and the keys of own columns.
 *
 * A function that throws, or returns anything but a text, hides the value.
 */
export function shownText(show: Show | undefined, field: ShownField): string | null {
  if (show === undefined) return field.text;
  try {
    const shown: unknown = show(field);
    return typeof shown === 'string' ? shown : null;
  } catch (error) {
    complainOnce(show, 'show threw an error, so values are hidden:', error);
    return null;
  }
}
