import type { Command } from 'commander';
import { type Finding, MissingMigrationError, type QueueVitals, type Vital } from '../../../index.ts';
import { type Answer, type Context, withProject } from '../context.ts';
import type { ExitCode } from '../exit-code.ts';
import { ShownValues } from '../shown-values.ts';
import type { Output, Style } from '../terminal/output.ts';
import { inLine } from '../terminal/printable.ts';

interface Flags {
  readonly strict?: boolean;
}

/** `doctor`: what is wrong with the database and the queues, for people and for CI. */
export function addDoctor(program: Command, end: (code: ExitCode) => void): void {
  const command = program
    .command('doctor')
    .description('check the database and the queues, and say what to do; exits with 1 on an error')
    .option('--strict', 'exit with 1 on warnings too');
  withProject<Flags>(command, doctor, end);
}

async function doctor({ project, flags, output }: Context<Flags>): Answer {
  const { db, queue } = project;
  const values = new ShownValues(project);
  const findings = (await queue.check(db)).map((found) => values.finding(found));
  const vitals = (await vitalsOf(() => queue.vitals(db), findings)).map((vital) => values.finding(vital));
  const judged = [...findings, ...vitals];
  const has = (severity: string) => judged.some((each) => each.severity === severity);
  const ok = !has('error') && !(flags.strict === true && has('warning'));
  if (output.json) await output.document({ ok, findings, vitals });
  else await print(output, judged);
  return ok ? 0 : 1;
}

/** Without tables there is nothing to measure, and the findings say so already. */
async function vitalsOf(
  ask: () => Promise<QueueVitals>,
  findings: readonly Finding[],
): Promise<readonly Vital[]> {
  try {
    return (await ask()).vitals;
  } catch (error) {
    if (error instanceof MissingMigrationError && findings.some(({ severity }) => severity === 'error'))
      return [];
    throw error;
  }
}

const STYLES: Readonly<Record<string, Style>> = {
  error: 'red',
  warning: 'yellow',
  hint: 'cyan',
  unknown: 'dim',
};
const ORDER = ['error', 'warning', 'hint', 'unknown'];

/** The verdict first, then what is wrong, the worst first: a reader may see no more than the beginning. */
async function print(output: Output, judged: readonly (Finding | Vital)[]): Promise<void> {
  const count = (severity: string) => judged.filter((each) => each.severity === severity).length;
  const [errors, warnings, fine] = [count('error'), count('warning'), count('ok')];
  await output.line(
    `${errors} ${errors === 1 ? 'error' : 'errors'}, ${warnings} ${warnings === 1 ? 'warning' : 'warnings'}` +
      (fine === 0 ? '' : `, and ${fine} vitals are ok`),
    errors > 0 ? 'red' : warnings > 0 ? 'yellow' : 'green',
  );
  for (const severity of ORDER) {
    for (const { code, message, fix } of judged.filter((each) => each.severity === severity)) {
      await output.write(`${output.styled(severity, STYLES[severity])} `);
      await output.line(`${inLine(message)} (${code})`);
      if (fix !== '') await output.line(`  ${fix}`);
    }
  }
}
