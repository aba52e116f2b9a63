/** What jobs still hold that their own handlers have ended by `complete(tx)`, until the handlers end, too. */
export interface HandlerHolds {
  /** The handler of such a job has ended. Resolves when nothing is held any more. Never rejects. */
  end(job: { readonly id: number; readonly group: string }): Promise<void>;
}
