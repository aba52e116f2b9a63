import { defineConfig } from 'drizzle-kit';

/** The table of metrics has a migration of its own, since an app may do without it. */
export default defineConfig({
  dialect: 'postgresql',
  schema: './src/features/metrics/schema/index.ts',
  out: './drizzle-metrics',
});
