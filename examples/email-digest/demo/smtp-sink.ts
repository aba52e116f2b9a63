/** A mail server that takes mails over SMTP (RFC 5321) and keeps them in memory. */
import { once } from 'node:events';
import { createServer, type Socket } from 'node:net';
import { createInterface } from 'node:readline';

export interface ReceivedMail {
  readonly to: string;
  readonly messageId: string;
  readonly lines: readonly string[];
}

export interface SmtpSink {
  readonly url: string;
  /** All that it has taken, repetitions included. */
  readonly mails: readonly ReceivedMail[];
  close(): void;
}

export interface SinkPlan {
  /** What it says to a recipient; undefined to accept. */
  refuse(to: string): string | undefined;
  /** Whether it takes this mail, and then never says so. */
  swallowsAnswer(mail: ReceivedMail): boolean;
}

export async function openSmtpSink(plan: SinkPlan): Promise<SmtpSink> {
  const mails: ReceivedMail[] = [];
  const server = createServer((socket) => {
    // A client that was killed is none of its concern.
    socket.on('error', () => undefined);
    converse(socket, plan, mails).catch(() => socket.destroy());
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  if (typeof address !== 'object' || address === null) throw new Error('The mail server has no port');
  server.unref();
  return { url: `smtp://127.0.0.1:${address.port}`, mails, close: () => server.close() };
}

async function converse(socket: Socket, plan: SinkPlan, mails: ReceivedMail[]): Promise<void> {
  const say = (line: string) => socket.write(`${line}\r\n`);
  let to = '';
  let data: string[] | undefined;
  say('220 sink.example');
  for await (const line of createInterface({ input: socket })) {
    if (data !== undefined) {
      if (line !== '.') {
        // A dot at the start of a line was doubled by the client.
        data.push(line.replace(/^\.\./, '.'));
        continue;
      }
      const mail = parse(to, data);
      data = undefined;
      mails.push(mail);
      if (!plan.swallowsAnswer(mail)) say('250 Taken');
      continue;
    }
    const [verb = ''] = line.toUpperCase().split(' ');
    if (verb === 'QUIT') return void socket.end('221 Bye\r\n');
    if (verb === 'DATA') {
      data = [];
      say('354 Go on');
    } else if (verb === 'RCPT') {
      to = /<(.*)>/.exec(line)?.[1] ?? '';
      say(plan.refuse(to) ?? '250 OK');
    } else {
      say(['EHLO', 'HELO', 'MAIL', 'RSET', 'NOOP'].includes(verb) ? '250 OK' : '502 Unknown');
    }
  }
}

function parse(to: string, data: readonly string[]): ReceivedMail {
  const end = data.indexOf('');
  const header = data.slice(0, end).find((line) => /^message-id:/i.test(line)) ?? '';
  const lines = data.slice(end + 1).filter((line) => line !== '');
  return { to, messageId: header.slice(header.indexOf(':') + 1).trim(), lines };
}
