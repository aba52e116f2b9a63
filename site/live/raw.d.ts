/** A file's text, by the bundler. */
declare module '*?raw' {
  const text: string;
  export default text;
}
