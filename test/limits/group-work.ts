/** What a job of the races of groups is to do. */
export interface GroupWork {
  readonly group: string;
  /** How long each attempt takes. */
  readonly ms: number;
  /** It ends sooner as soon as this file exists. @default none */
  readonly gate?: string | undefined;
  /** How many attempts snooze before anything else. */
  readonly snoozes: number;
  /** How many fail then. */
  readonly fails: number;
  /** Whether the first one after that fails for good. */
  readonly discards: boolean;
}
