/* SPDX-License-Identifier: MIT
 * The built-in prompts (plan.h). */
#include "experiments/cli/plan.h"

const wg_plan_prompt wg_plan_prompts[WG_PLAN_PROMPTS] = {
    { "chat", "My neighbour's dog barks every morning at six. How can I bring this up without starting a quarrel?" },
    { "edit", "Rename the variable t to total in this function and print the whole function:\n\n"
              "def price(items):\n    t = 0\n    for item in items:\n        t += item.cost * item.count\n"
              "    return round(t, 2)\n" },
    { "summary", "Summarise this report in two sentences and quote one sentence of it word for word:\n\n"
                 "The bridge at Millford was closed on Monday after a crack was found in its northern arch. Engineers expect "
                 "the repair to take six weeks. Until then buses go round by the old mill, which adds a quarter of an hour." },
    { "structured", "Write these people as a JSON list of objects with the keys name, age and city: Anna Berg is 34 and lives "
                    "in Oslo; Tom Lee, 51, lives in Leeds; Maria Costa from Porto is 28." },
    { "chat", "I have an hour before guests arrive, three eggs, flour and some old apples. What could I bake?" },
    { "edit", "This function fails for an empty list. Correct it and print the whole function:\n\n"
              "function mean(values) {\n  let sum = 0;\n  for (const value of values) {\n    sum += value;\n  }\n"
              "  return sum / values.length;\n}\n" },
    { "summary", "What does this notice ask of tenants? Answer briefly and quote the words that matter:\n\n"
                 "The water will be turned off on Thursday between nine and noon while the pump in the cellar is replaced. "
                 "Please fill a kettle and a bucket before nine, and keep all taps closed until the caretaker rings." },
    { "structured", "Turn these lines into a Markdown table with a heading:\n\n"
                    "item,price,stock\nlamp,24.50,7\nchair,61.00,12\ndesk,189.90,3\nshelf,45.00,0\n" },
    { "chat", "Explain to a child of ten why the moon seems to change its shape." },
    { "edit", "Add the column city of the table customer to this query and print the whole query:\n\n"
              "SELECT customer.name, customer.email, orders.total\nFROM customer\n"
              "JOIN orders ON orders.customer = customer.id\nWHERE orders.total > 100\nORDER BY orders.total DESC;\n" },
    { "summary", "Give the decision of this letter in one sentence, then quote its reasons:\n\n"
                 "Thank you for your request to open the library on Sundays. The board will not open on Sundays this year. "
                 "Only two of nine staff could work then, and heating the reading room for one more day would cost more than "
                 "the budget for new books." },
    { "structured", "Write this as YAML: the service web runs two copies of the image shop:1.4 on port 8080, and the service "
                    "cache runs one copy of the image store:2.0 on port 6379." },
    { "chat", "Which is better for a beginner who wants to play songs with friends, a guitar or a piano? Say why." },
    { "edit", "Print this C function again with braces around the body of every if and for:\n\n"
              "int count(const char *s, char c)\n{\n    int n = 0;\n    for (; *s; s++)\n        if (*s == c)\n"
              "            n++;\n    return n;\n}\n" },
    { "summary", "List what was agreed in these minutes, each point with a quotation:\n\n"
                 "Ann reported that the hall is booked for the ninth of May. Ben will print two hundred posters by April. The "
                 "choir sings first and the band plays after the interval. Tickets cost five pounds and children pay "
                 "nothing." },
    { "structured", "Give a JSON object that has the English words bread, water, house and friend as keys and their Spanish "
                    "translations as values." },
};
