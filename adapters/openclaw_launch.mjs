// Starts openclaw inside the container and keeps it to its limit of turns, for which it has no setting.
//
// openclaw is pointed at this process, which hands every request on to the gateway byte for byte, and every reply
// back as it comes. Once the model has answered as many requests with tools as it may, the next one is answered
// here, with a closing text: openclaw ends by itself, with its session written. A reply that failed or broke off is
// no turn. Run as `node openclaw_launch.mjs FOLDER ENTRY TURNS ARGUMENT...`: FOLDER has the config, ENTRY is
// openclaw's own script, which gets the arguments behind `agent exec --config FOLDER/openclaw.json`.

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

function hasTools(body) {
  try {
    return JSON.parse(body).tools?.length > 0;
  } catch {
    return false;
  }
}

function conclude(body, response) {
  const text = `The limit of ${maxTurns} turns is reached, so the work ends here.`;
  process.stderr.write(`clawbench: ${text}\n`);
  const { model, stream } = JSON.parse(body);
  const common = { id: "limit", created: Math.floor(Date.now() / 1000), model };
  const usage = { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 };
  const message = { role: "assistant", content: text };
  if (!stream) {
    response.writeHead(200, { "content-type": "application/json" });
    const choices = [{ index: 0, message, finish_reason: "stop" }];
    response.end(JSON.stringify({ ...common, object: "chat.completion", choices, usage }));
    return;
  }
  response.writeHead(200, { "content-type": "text/event-stream" });
  const choices = [{ index: 0, delta: message, finish_reason: "stop" }];
  for (const rest of [{ choices }, { choices: [], usage }]) {
    response.write(`data: ${JSON.stringify({ ...common, object: "chat.completion.chunk", ...rest })}\n\n`);
  }
  response.end("data: [DONE]\n\n");
}

function forward(request, body, response, isTurn) {
  const { host, ...headers } = request.headers;
  const { hostname, port } = gateway;
  const upstream = http.request({ agent, hostname, port, method: request.method, path: request.url, headers });
  upstream.on("error", () => response.destroy());
  response.on("close", () => upstream.destroy());
  upstream.on("response", (reply) => {
    const isStream = (reply.headers["content-type"] ?? "").startsWith("text/event-stream");
    let tail = "";
    reply.on("data", (chunk) => {
      tail = (tail + chunk.toString("latin1")).slice(-32);
    });
    reply.on("error", () => response.destroy());
    reply.on("end", () => {
      if (isTurn && reply.statusCode === 200 && (!isStream || tail.trimEnd().endsWith("[DONE]"))) {
        turns += 1;
      }
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
    const isTurn = request.method === "POST" && request.url.endsWith("/chat/completions") && hasTools(body);
    if (isTurn && turns >= maxTurns) {
      conclude(body, response);
    } else {
      forward(request, body, response, isTurn);
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
