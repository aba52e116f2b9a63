import { defineConfig } from 'drizzle-kit';

/** The library's own tables, so that `drizzle/` always holds what drizzle-kit makes of `src/schema`. */
export default defineConfig({
  dialect: 'postgresql',
  schema: './src/schema/index.ts',
  out: './drizzle',
});
