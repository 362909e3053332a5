"""Requests of the case studies as zeep writes them: one line a message, `operation<TAB>envelope`.

    python -m venv v && v/bin/pip install zeep==4.3.3
    v/bin/python contracts/codecs/tests/oracle/soap_messages.py > soap_requests.txt
    v/bin/python contracts/codecs/tests/oracle/soap_messages.py check < soap_responses.txt > soap_responses_read.txt

With `check` it reads responses, `operation<TAB>envelope`, as this crate's tests write them, and prints what zeep makes of each.
"""
import datetime
import json
import os
import sys

from lxml import etree
from zeep import Client
from zeep.exceptions import Fault
from zeep.helpers import serialize_object

SCHEMAS = os.path.join(os.path.dirname(__file__), "..", "..", "schemas")
CHESS = Client(os.path.join(SCHEMAS, "chess.wsdl"))
AIRLINE = Client(os.path.join(SCHEMAS, "airline.wsdl"))
UTC = datetime.timezone.utc
REQUESTS = [
    (CHESS, "GetMyGames", dict(username="user-1", password="password")),
    (CHESS, "MakeGame", dict(whiteUser="anna <a&b>", blackUser="Łucja \"x\"")),
    (CHESS, "MakeAMove", dict(username="user-1", password="password", gameId=17, resign=False, acceptDraw=False, movecount=1,
                              myMove="e4", offerDraw=True, claimDraw=False, myMessage=None)),
    (AIRLINE, "bookSeat", dict(isTestOnly=True, bookingRequestNumber=-2147483648, flightId="F1", passenger=dict(
        dateOfBirth=datetime.date(1970, 1, 2), firstName="Ada", lastName="L."))),
    (AIRLINE, "findSeats", dict(departAirport="ANY", arriveAirport="TPA", earliestDepartTime=datetime.datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC),
                                latestDepartTime=datetime.datetime(2026, 2, 2, tzinfo=UTC), minimumSeatsAvailable=1, maximumFlightsToReturn=20)),
    (AIRLINE, "resetBackend", dict()),
]

if sys.argv[1:] == ["check"]:
    class Response:
        status_code, headers, encoding = 200, {"Content-Type": "text/xml"}, "utf-8"

    for line in sys.stdin:
        operation, envelope = line.rstrip("\n").split("\t")
        client = CHESS if operation in ("GetMyGames", "MakeGame", "MakeAMove") else AIRLINE
        response = Response()
        response.content = envelope.encode()
        try:
            binding = client.service._binding
            read = binding.process_reply(client, binding.get(operation), response)
            print(operation, json.dumps(serialize_object(read, dict), default=str, ensure_ascii=False, sort_keys=True))
        except Fault as fault:
            print(operation, "fault", fault.code, fault.message)
else:
    for client, operation, arguments in REQUESTS:
        envelope = client.create_message(client.service, operation, **arguments)
        print(operation, etree.tostring(envelope, encoding="unicode"), sep="\t")
