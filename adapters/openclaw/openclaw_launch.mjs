// Starts openclaw inside the container and enforces its limit of turns, for which it has no setting.
//
// openclaw talks to this process, which passes every request on to the gateway byte for byte, and every reply back as
// it arrives; it only asks for uncompressed replies, since it must see their end. Once the model has answered as many
// requests with tools as allowed, the next one is answered here, with a closing text, so that openclaw ends by itself
// and writes its session. A reply that failed or broke off is not a turn. Run as
// `node openclaw_launch.mjs FOLDER ENTRY TURNS ARGUMENT...`: FOLDER has the config, ENTRY is openclaw's own script,
// which gets the arguments behind `agent exec --config FOLDER/openclaw.json`.

import { spawn } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import http from "node:http";
import { constants } from "node:os";

const [folder, entry, limit, ...options] = process.argv.slice(2);
const maxTurns = Number(limit);
const config = JSON.parse(readFileSync(`${folder}/config.json`, "utf8"));
const provider = config.models.providers.gateway;
const gateway = new URL(provider.baseUrl);
const agent = new http.Agent({ keepAlive: true });
let turns = 0;

// For each wire format: the line that only a complete stream ends with, the last line if there is another, and the
// closing text.
const COMPLETED = /"type":\s*"response\.(completed|incomplete)"/;
const STOPPED = /"type":\s*"message_stop"/;
const FORMATS = {
  "/chat/completions": {
    end: /"finish_reason":\s*"/,
    last: /^data:\s*\[DONE\]/,
    whole: chatCompletion,
    events: chatChunks,
  },
  "/responses": { end: COMPLETED, last: COMPLETED, whole: modelResponse, events: responseEvents },
  "/messages": { end: STOPPED, last: STOPPED, whole: anthropicMessage, events: messageEvents },
};

function formatOf(request) {
  const { pathname } = new URL(request.url, "http://127.0.0.1");
  const path = request.method === "POST" && Object.keys(FORMATS).find((known) => pathname.endsWith(known));
  return path ? FORMATS[path] : undefined;
}

function chatCompletion(model, content) {
  const choices = [{ index: 0, message: { role: "assistant", content }, finish_reason: "stop" }];
  const usage = { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 };
  return { id: "limit", object: "chat.completion", created: Math.floor(Date.now() / 1000), model, choices, usage };
}

function chatChunks(model, content) {
  const { usage, ...whole } = chatCompletion(model, content);
  const common = { ...whole, object: "chat.completion.chunk" };
  const choices = [{ index: 0, delta: { role: "assistant", content }, finish_reason: "stop" }];
  return [{ ...common, choices }, { ...common, choices: [], usage }, "[DONE]"];
}

function modelResponse(model, text) {
  const content = [{ type: "output_text", text, annotations: [] }];
  const output = [{ id: "msg_limit", type: "message", role: "assistant", status: "completed", content }];
  const usage = { input_tokens: 0, output_tokens: 0, total_tokens: 0 };
  const created = Math.floor(Date.now() / 1000);
  return { id: "resp_limit", object: "response", created_at: created, model, status: "completed", output, usage };
}

function responseEvents(model, text) {
  const response = modelResponse(model, text);
  const [item] = response.output;
  const [part] = item.content;
  const place = { item_id: item.id, output_index: 0, content_index: 0 };
  const events = [
    { type: "response.created", response: { ...response, status: "in_progress", output: [], usage: null } },
    { type: "response.output_item.added", output_index: 0, item: { ...item, status: "in_progress", content: [] } },
    { type: "response.content_part.added", ...place, part: { ...part, text: "" } },
    { type: "response.output_text.delta", ...place, delta: text },
    { type: "response.output_text.done", ...place, text },
    { type: "response.content_part.done", ...place, part },
    { type: "response.output_item.done", output_index: 0, item },
    { type: "response.completed", response },
  ];
  return events.map((event, number) => ({ ...event, sequence_number: number }));
}

function anthropicMessage(model, text) {
  const usage = { input_tokens: 0, output_tokens: 0 };
  const content = [{ type: "text", text }];
  const end = { stop_reason: "end_turn", stop_sequence: null };
  return { id: "msg_limit", type: "message", role: "assistant", model, content, ...end, usage };
}

function messageEvents(model, text) {
  const { content, stop_reason, stop_sequence, usage, ...message } = anthropicMessage(model, text);
  return [
    { type: "message_start", message: { ...message, content: [], stop_reason: null, stop_sequence, usage } },
    { type: "content_block_start", index: 0, content_block: { type: "text", text: "" } },
    { type: "content_block_delta", index: 0, delta: { type: "text_delta", text } },
    { type: "content_block_stop", index: 0 },
    { type: "message_delta", delta: { stop_reason, stop_sequence }, usage: { output_tokens: 0 } },
    { type: "message_stop" },
  ];
}

function hasTools(body) {
  try {
    return JSON.parse(body).tools?.length > 0;
  } catch {
    return false;
  }
}

function conclude(format, body, response) {
  const text = `The limit of ${maxTurns} turns is reached, so the work ends here.`;
  process.stderr.write(`clawbench: ${text}\n`);
  const { model, stream } = JSON.parse(body);
  if (!stream) {
    response.writeHead(200, { "content-type": "application/json" });
    response.end(JSON.stringify(format.whole(model, text)));
    return;
  }
  response.writeHead(200, { "content-type": "text/event-stream" });
  for (const event of format.events(model, text)) {
    const name = event.type ? `event: ${event.type}\n` : "";
    response.write(`${name}data: ${typeof event === "string" ? event : JSON.stringify(event)}\n\n`);
  }
  response.end();
}

function forward(request, body, response, format) {
  const { host, "accept-encoding": _, ...headers } = request.headers;
  const { hostname, port } = gateway;
  const upstream = http.request({ agent, hostname, port, method: request.method, path: request.url, headers });
  let isWhole = false;
  let isOver = false;
  // openclaw stops reading at the last line, not at the stream's end: that was its turn, and it may ask again at once
  const endTurn = () => {
    turns += isWhole && !isOver ? 1 : 0;
    isOver ||= isWhole;
  };
  const breakOff = () => {
    isOver = true;
    response.destroy();
  };
  upstream.on("error", breakOff);
  response.on("close", () => {
    endTurn();
    upstream.destroy();
  });
  upstream.on("response", (reply) => {
    const isStream = (reply.headers["content-type"] ?? "").startsWith("text/event-stream");
    const counts = format && reply.statusCode === 200;
    let line = "";
    reply.on("data", (chunk) => {
      if (!counts || !isStream || isOver) {
        return;
      }
      const lines = (line + chunk.toString("latin1")).split("\n");
      line = lines.pop();
      for (const text of lines.filter((each) => each.startsWith("data:"))) {
        isWhole ||= format.end.test(text);
        if (format.last.test(text)) {
          endTurn();
        }
      }
    });
    reply.on("error", breakOff);
    reply.on("end", () => {
      isWhole ||= counts && (!isStream || format.end.test(line));
      endTurn();
    });
    response.writeHead(reply.statusCode, reply.headers);
    response.flushHeaders();
    reply.pipe(response);
  });
  upstream.end(body);
}

const server = http.createServer((request, response) => {
  const chunks = [];
  request.on("data", (chunk) => chunks.push(chunk));
  request.on("end", () => {
    const body = Buffer.concat(chunks);
    const format = hasTools(body) ? formatOf(request) : undefined;
    if (format && turns >= maxTurns) {
      conclude(format, body, response);
    } else {
      forward(request, body, response, format);
    }
  });
});
server.requestTimeout = 0;
server.keepAliveTimeout = 0;

server.listen(0, "127.0.0.1", () => {
  provider.baseUrl = `http://127.0.0.1:${server.address().port}${gateway.pathname}`;
  writeFileSync(`${folder}/openclaw.json`, JSON.stringify(config, null, 2));
  mkdirSync(`${folder}/state`, { recursive: true });
  const command = [entry, "agent", "exec", "--config", `${folder}/openclaw.json`, ...options];
  const child = spawn(process.execPath, command, { stdio: ["ignore", "inherit", "inherit"] });
  child.on("exit", (code, signal) => process.exit(code ?? 128 + constants.signals[signal]));
});
