import { defineConfig } from 'drizzle-kit';

export default defineConfig({
  dialect: 'postgresql',
  schema: './examples/nightly-report/schema.ts',
  out: './examples/nightly-report/drizzle',
});
