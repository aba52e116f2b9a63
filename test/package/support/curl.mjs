#!/usr/bin/env node
// As much of curl as the guides use, for machines that do not have it.
const headers = new Headers();
let [method, url] = ['GET', ''];
/** @type {string | undefined} */
let body;
for (let args = process.argv.slice(2); args.length > 0; ) {
  const [option = '', value = ''] = args;
  args = args.slice(/^-[XHd]$/.test(option) ? 2 : 1);
  if (option === '-X') method = value;
  else if (option === '-H') {
    const [name = '', text = ''] = value.split(': ');
    headers.append(name, text);
  } else if (option === '-d') body = value;
  else if (!option.startsWith('-')) url = `http://${option}`;
}
const response = await fetch(url, { method, headers, ...(body !== undefined && { body }) });
process.stdout.write(await response.text());
if (!response.ok) process.exitCode = 22;
