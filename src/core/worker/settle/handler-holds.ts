/** A job that its own handler has ended by `complete(tx)`. */
export interface EndedJob {
  readonly id: number;
  readonly group: string;
}

/** What such jobs still hold until their handlers end, too. */
export interface HandlerHolds {
  /** The handler of one has ended. Resolves when nothing is held any more. Never rejects. */
  end(job: EndedJob): Promise<void>;
}
