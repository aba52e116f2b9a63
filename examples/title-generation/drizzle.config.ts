// Without `defineConfig`: Next.js checks this file, too, and drizzle-kit is not among the packages of this app.
export default {
  dialect: 'postgresql',
  schema: './examples/title-generation/lib/schema.ts',
  out: './examples/title-generation/drizzle',
};
