import type { ExitCode } from './exit-code.ts';

/** Something that the user is told in one sentence, without a stack. */
export class Failure extends Error {
  override name = 'Failure';
  readonly exitCode: ExitCode;

  constructor(message: string, exitCode: ExitCode = 1, options?: ErrorOptions) {
    super(message, options);
    this.exitCode = exitCode;
  }
}

/** For arguments that cannot be understood. */
export function misused(message: string): Failure {
  return new Failure(message, 2);
}
