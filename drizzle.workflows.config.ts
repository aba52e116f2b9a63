import { defineConfig } from 'drizzle-kit';

/** The tables of workflows have a migration of its own, since an app may do without it. */
export default defineConfig({
  dialect: 'postgresql',
  schema: './src/features/workflows/schema/index.ts',
  out: './drizzle-workflows',
});
