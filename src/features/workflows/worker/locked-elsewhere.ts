/** Another transaction has locked what a step of `runNext` needs: the job is to be called again. */
export class LockedElsewhere extends Error {
  constructor() {
    super('Another transaction has locked what the step needs');
  }
}
