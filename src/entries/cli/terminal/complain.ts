import { inLine } from './printable.ts';

/** Tells people something in one line, beside the output of the command. */
export function complain(text: string): void {
  process.stderr.write(`${inLine(text)}\n`);
}
