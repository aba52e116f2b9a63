import { expect, onTestFinished, test } from 'vitest';
import { createDatabase } from '../support/databases.ts';
import { useTestDatabase } from '../support/test-database.ts';
import { endOf } from './support/run-program.ts';
import { useFixture } from './support/use-fixture.ts';

const server = useTestDatabase();
const project = useFixture('../../../examples/title-generation');

test('the example title-generation builds, and every chat gets its title', async () => {
  // An empty one: the app has the queue's tables in its own migrations.
  const database = await createDatabase(server.url);
  onTestFinished(() => database.drop());
  const env = { DATABASE_URL: database.url, NEXT_TELEMETRY_DISABLED: '1' };
  await project().run('npx', ['next', 'build'], env);
  const { code, stdout, output } = await endOf('npx', ['tsx', 'check.ts'], { cwd: project().directory, env });
  expect(code, output).toBe(0);
  expect(stdout).toContain('✓ Pages that came with their title: 16\n');
  expect(stdout).not.toContain('✗');
  expect(stdout).toMatch(/\nEach chat has its title, and the model was asked as the limits say\.\n$/);
});
