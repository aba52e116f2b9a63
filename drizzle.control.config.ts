import { defineConfig } from 'drizzle-kit';

/** The control tables have migrations of their own, since an app may do without them. */
export default defineConfig({
  dialect: 'postgresql',
  schema: './src/features/control/index.ts',
  out: './drizzle-control',
});
