import { describe, expect, test } from 'vitest';
import { useTestDatabase } from '../support/test-database.ts';
import { endOf } from './support/run-program.ts';
import { useFixture } from './support/use-fixture.ts';
import { DRIZZLE_MAJORS, DRIZZLE_VERSIONS } from './support/versions.ts';

/** What `jest --json` says, as far as it is read here. */
interface Report {
  readonly numPassedTests: number;
  readonly numTotalTests: number;
  readonly testResults: readonly { readonly assertionResults: readonly Assertion[] }[];
}

interface Assertion {
  readonly title: string;
  readonly status: string;
  readonly failureMessages: readonly string[];
}

describe.each(DRIZZLE_MAJORS)('with drizzle-orm %s, in Jest', (major) => {
  const database = useTestDatabase();
  const project = useFixture('jest', [`drizzle-orm@${DRIZZLE_VERSIONS[major]}`]);
  const jest = async (file: string) => {
    const env = { DATABASE_URL: database.url };
    const args = ['jest', '--ci', '--json', file];
    const { code, stdout, output } = await endOf('npx', args, { cwd: project().directory, env });
    expect(stdout, output).toMatch(/^\{/);
    const report: Report = JSON.parse(stdout);
    return { code, report, results: report.testResults.flatMap(({ assertionResults }) => assertionResults) };
  };

  test("an app's own tests pass with the kit", async () => {
    const { code, report, results } = await jest('kit.test.js');
    expect(results.flatMap(({ failureMessages }) => failureMessages)).toEqual([]);
    expect(report).toMatchObject({ numPassedTests: 4, numTotalTests: 4 });
    expect(code).toBe(0);
  });

  test('what does not match fails, and says what came nearest', async () => {
    const { code, results } = await jest('wrong.test.js');
    expect(code).toBe(1);
    const said = new Map(results.map(({ title, failureMessages }) => [title, failureMessages.join('\n')]));
    expect([...said.keys()]).toEqual(['missing', 'unwanted', 'unfinished']);
    expect(said.get('missing')).toContain('payload.name: "Ada", expected "Eve"');
    expect(said.get('unwanted')).toContain('1 job of this kind fits');
    expect(said.get('unfinished')).toContain('state: "due", expected "completed"');
  });
});
