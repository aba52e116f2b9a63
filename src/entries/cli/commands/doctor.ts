import type { Command } from 'commander';
import { type Finding, MissingMigrationError, type QueueVitals, type Vital } from '../../../index.ts';
import { notInVitals, sqlStateOf } from '../../../internal.ts';
import { type Answer, type Context, withProject } from '../context.ts';
import type { ExitCode } from '../exit-code.ts';
import { sentenceOf } from '../sentence-of.ts';
import { ShownValues } from '../shown-values.ts';
import type { Output, Style } from '../terminal/output.ts';
import { inLine } from '../terminal/printable.ts';

const INSUFFICIENT_PRIVILEGE = '42501';

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
  const found = await queue.check(db);
  const { vitals, unread } = await vitalsOf(() => queue.vitals(db), found);
  const findings = [...found, ...unread];
  const judged = [...findings, ...vitals];
  const has = (severity: string) => judged.some((each) => each.severity === severity);
  const ok = !has('error') && !(flags.strict === true && has('warning'));
  const shown = <T extends Finding | Vital>(some: readonly T[]) => some.map((one) => values.finding(one));
  if (output.json) await output.document({ ok, findings: shown(findings), vitals: shown(vitals) });
  // A reader sees one cause once; JSON keeps both codes for programs.
  else await print(output, [...shown(notInVitals(findings, vitals)), ...shown(vitals)]);
  return ok ? 0 : 1;
}

interface VitalsRead {
  readonly vitals: readonly Vital[];
  /** Why they could not be read. */
  readonly unread: readonly Finding[];
}

/** Without tables there is nothing to measure, and the findings say so already. */
async function vitalsOf(ask: () => Promise<QueueVitals>, findings: readonly Finding[]): Promise<VitalsRead> {
  try {
    return { vitals: (await ask()).vitals, unread: [] };
  } catch (error) {
    if (error instanceof MissingMigrationError && findings.some(({ severity }) => severity === 'error'))
      return { vitals: [], unread: [] };
    if (sqlStateOf(error) !== INSUFFICIENT_PRIVILEGE) throw error;
    return { vitals: [], unread: [withoutRights(error)] };
  }
}

/** What was found before is worth telling all the same. */
function withoutRights(error: unknown): Finding {
  return {
    code: 'permission-denied',
    severity: 'error',
    message: `This role may not read what the vitals need. ${sentenceOf(error)}`,
    fix: 'Run doctor as a role that may read all tables of the queue: see the guide "Schema", "Grants"',
  };
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
